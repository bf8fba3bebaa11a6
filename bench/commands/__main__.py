"""`python -m bench.commands`."""

from bench.commands.run import main

main()
