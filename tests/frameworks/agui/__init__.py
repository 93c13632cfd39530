"""The AG-UI proxy before agents of Pydantic AI and LangGraph."""
