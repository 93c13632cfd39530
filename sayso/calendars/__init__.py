"""Working hours, public holidays, time zones and moments, for rules, deadlines and people."""
