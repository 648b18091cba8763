"""The parts of the command line. As in `gateway.cli`, nothing heavy is imported at the top of any of them."""
