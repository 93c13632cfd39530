"""Shell texts that are run in real shells, in a folder whose programs only record that they ran."""
