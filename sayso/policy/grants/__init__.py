"""Standing grants: what rules let people grant, which calls a grant covers, and making one."""
