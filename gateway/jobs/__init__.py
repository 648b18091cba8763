"""Work that lasts: the table of jobs, who has claimed one, what is kept of it, and the runner that carries it out (WD-97 to WD-101)."""
