#!/bin/bash
# machine.sh -- what pages of results say of the machine and the program; other scripts here read it.
# Alone it prints the machine.
processor() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

# stamp: the first line of a table that is no page
stamp() { echo "# $(date -u +%F) $(git rev-parse --short HEAD) $(uname -m) $(processor)"; }

# made_by NAME: the first words of a page, without an end; $heddle is the program
made_by()
{
	echo -n "Made by \`bench/$1\` on $(date -u +%F) with $("$heddle" version | sed -n 1p), $(processor)"
}

# with_load: the machine and what else it does
with_load() { echo "$(nproc) cores, $(processor), load $(cut -d ' ' -f 1 /proc/loadavg)"; }

[ "$0" != "${BASH_SOURCE[0]}" ] || with_load
