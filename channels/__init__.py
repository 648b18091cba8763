"""The outside, spoken: one package for each chat platform behind one small port. Imports none of ours."""
