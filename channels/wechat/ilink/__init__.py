"""Personal WeChat through the vendor's bot interface, iLink: a phone scans a code, messages come by long poll and leave by HTTPS."""
