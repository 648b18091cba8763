# What `gateway.cron` uses of apscheduler; the package has no type hints.

from datetime import datetime, tzinfo

class CronTrigger:
    def __init__(
        self,
        *,
        month: str | None = None,
        day: str | None = None,
        day_of_week: str | None = None,
        hour: int | None = None,
        minute: int | None = None,
        end_date: datetime | None = None,
        timezone: tzinfo | None = None,
    ) -> None: ...
    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...
