"""`yumegate doctor`: everything the gateway needs, looked at once, each with what to do about it (WO-35)."""
