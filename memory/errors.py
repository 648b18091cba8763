"""What the store raises, split by what the caller should do.

StoreError
├── StoreUnavailable    try again: locked, disk full, server gone; nothing was written
├── StoreTooNew         ask a person: the database was made by a newer version and is left alone (RL-5)
├── StoreHeld           ask a person: another process holds the data directory; names its process id (WD-120)
└── StoreDamaged        ask a person: the file is broken, or no database
"""


class StoreError(Exception):
    foreseen = True  # for background work: its text says all, no stack helps


class StoreUnavailable(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class StoreHeld(StoreError):
    pass


class StoreDamaged(StoreError):
    pass
