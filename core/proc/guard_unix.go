//go:build unix

package proc

import "syscall"

// guardAttributes puts the guard into its own session, where no signal from the
// terminal reaches it. It must outlive this process.
func guardAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// guardScript is the guard's program. Its first line of input is the token of the
// supervisor's markers, followed by "+pid" and "-pid" for commands that start and
// end, and "q" for a normal end. On end-of-file it kills the remaining process
// groups and, if there is a /proc, their sessions and all processes with the
// token, until there are none.
const guardScript = `
trap '' HUP INT QUIT TERM
IFS= read -r token || exit 0
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
	for stat in /proc/[0-9]*/stat; do
		IFS= read -r line <"$stat" || continue
		pid=${line%% *}
		set -- ${line##*) }
		case $live in
		*" $4 "*) [ "$1" = Z ] || { kill -KILL "$pid" && found=1; } ;;
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
