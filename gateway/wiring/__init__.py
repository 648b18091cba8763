"""The composition root in parts: each ties one side of the gateway together. `gateway/app.py` says in which order, and what each is given."""
