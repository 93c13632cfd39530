"""What people decided in a span of time: figures, rules that follow from them, and signs of fatigue."""
