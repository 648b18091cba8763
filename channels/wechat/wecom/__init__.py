"""The WeCom AI bot: a long connection of JSON frames, or the vendor's calls where a long connection cannot be had."""
