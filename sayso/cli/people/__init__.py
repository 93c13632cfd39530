"""Commands for people: accounts, groups, contacts and absences."""
