"""The AgentDojo benchmark: an agent that obeys every injection, and a reviewer who knows the user's task."""
