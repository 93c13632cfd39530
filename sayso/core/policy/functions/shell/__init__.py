"""The texts of shell commands: their syntax, and the programs and subcommands that they run."""
