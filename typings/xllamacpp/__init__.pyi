# What the demo model uses of xllamacpp; the package has no type hints.

class CommonParamsModel:
    path: str

class CpuParams:
    n_threads: int

class SamplingParams:
    temp: float
    penalty_repeat: float
    penalty_last_n: int

class CommonParams:
    model: CommonParamsModel
    cpuparams: CpuParams
    sampling: SamplingParams
    n_ctx: int
    n_parallel: int
    n_predict: int
    hostnames: list[str]
    port: int
    api_keys: list[str]
    use_jinja: bool
    warmup: bool
    verbosity: int
    ui: bool
    endpoint_slots: bool
    cors_origins: str
    cache_ram_mib: int
    cache_idle_slots: bool
    def __init__(self) -> None: ...

class Server:
    listening_address: str
    def __init__(self, params: CommonParams) -> None: ...
