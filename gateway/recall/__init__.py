"""Old passages of the talk: indexed behind the replies, asked for by each of them, looked after by people."""
