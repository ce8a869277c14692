"""Preregistered gates on LLM inference experiments. See README.md; importing this starts and changes nothing."""
