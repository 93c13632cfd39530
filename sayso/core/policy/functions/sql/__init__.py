"""What Sayso knows of each SQL database: its tokens, words, functions and the nodes of its syntax trees."""
