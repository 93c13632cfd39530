"""The LangChain agent, interrupting per call."""

from tests.frameworks.bots.langgraph import make

bot = make("per_call")
