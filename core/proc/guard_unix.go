//go:build unix

package proc

import "syscall"

// guardAttributes puts the guard into its own session, where no signal from the
// terminal reaches it. It must outlive this process.
func guardAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// guardScript is the guard's program. Its first lines of input are the token of the
// supervisor's markers and the brand, followed by "+pid" and "-pid" for commands that
// start and end, and "q" for a normal end. On end-of-file it kills the remaining
// process groups and, if there is a /proc, their sessions and all processes with the
// token or the brand, until there are none.
const guardScript = `
trap '' HUP INT QUIT TERM
IFS= read -r token && IFS= read -r brand || exit 0
live=' '
while IFS= read -r line; do
	id=${line#[+-]}
	case $line in
	q) exit 0 ;;
	+*) live="$live$id " ;;
	-*)
		case $live in
		*" $id "*) live="${live%%" $id "*} ${live#*" $id "}" ;;
		esac
		;;
	esac
done
exec 2>/dev/null
for id in $live; do
	kill -KILL -- "-$id"
done
round=0
while [ "$round" -lt 40 ]; do
	found=
	branded=' '
	for file in $([ "$brand" = 0 ] || grep -l -e "^Max file locks  *$brand " /proc/[0-9]*/limits); do
		pid=${file#/proc/}
		branded="$branded${pid%/limits} "
	done
	for stat in /proc/[0-9]*/stat; do
		IFS= read -r line <"$stat" || continue
		pid=${line%% *}
		set -- ${line##*) }
		case "$live;$branded" in
		*" $4 "*';'* | *';'*" $pid "*) [ "$1" = Z ] || { kill -KILL "$pid" && found=1; } ;;
		esac
	done
	for file in $(grep -alF -e "$token" /proc/[0-9]*/environ); do
		pid=${file#/proc/}
		kill -KILL "${pid%/environ}" && found=1
	done
	[ -n "$found" ] || exit 0
	round=$((round + 1))
	sleep 0.05
done
`
