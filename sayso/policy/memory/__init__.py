"""The memory of rules: what each counts of the calls that it covers, and what that says about the next call."""
