"""`python -m gateway …` is the same as `yumegate …`."""

from gateway.cli import main

main()
