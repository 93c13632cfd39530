"""What the store knows of the load: the ready list, how late runs start, sizes of the lists."""
