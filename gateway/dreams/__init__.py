"""The nightly dream of a scope: reading, asking, judging, writing step by step, and what people see of it."""
