"""The LangChain agent, interrupting batched."""

from tests.frameworks.bots.langgraph import make

bot = make("batched")
