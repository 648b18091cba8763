"""What the model may do besides speak. Tools are handed to the runtime; it runs them with limits and off the loop's critical path (RL-23)."""
