# scan sets pids to the living processes of the group or session $group, except
# the witness. With $1 set it adds those with the token in their environment, and
# all descendants. It starts no process that could be mistaken for one of them.
scan() {
	table=
	if [ -r /proc/self/stat ]; then
		read_proc
	else
		read_ps
	fi
	pids=' '
	carriers=
	[ -z "$1" ] || marked
	grown=yes
	while [ -n "$grown" ]; do
		grown=
		grow "$1" $table
		[ -n "$1" ] || break
	done
	living=
	for pid in $pids; do
		# The programs that made the list may be in it.
		kill -0 "$pid" 2>/dev/null && living="$living $pid"
	done
	pids=${living# }
}

read_proc() {
	for entry in /proc/[0-9]*; do
		{ IFS= read -r line <"$entry/stat"; } 2>/dev/null || continue
		add_stat "${entry#/proc/}" ${line##*) }
	done
}

# add_stat takes a pid and the fields after the name: state, parent, group,
# session, terminal, its group, flags. It skips zombies and exiting processes.
add_stat() {
	[ $# -ge 8 ] || return 0
	case $2 in Z | X) return 0 ;; esac
	case $8 in *[!0-9]*) return 0 ;; esac
	[ $(($8 & 4)) -ne 0 ] || table="$table $1 $3 $4 $5"
}

read_ps() {
	list=$(ps -A -o pid= -o ppid= -o pgid= -o stat=)
	add_ps $list
}

add_ps() {
	while [ $# -ge 4 ]; do
		case $4 in Z*) ;; *) table="$table $1 $2 $3 $3" ;; esac
		shift 4
	done
}

# marked adds the processes with the token. Some greps stop at a NUL byte.
marked() {
	[ -r /proc/self/environ ] || return 0
	if printf 'a\000b' | grep -qF b; then
		found=$(grep -lF "$token" /proc/[0-9]*/environ 2>/dev/null)
	else
		found=$(for entry in /proc/[0-9]*/environ; do
			{ tr '\000' '\n' <"$entry" | grep -qF "$token"; } 2>/dev/null && echo "$entry"
		done)
	fi
	for entry in $found; do
		entry=${entry#/proc/}
		carriers="$carriers ${entry%/environ} "
	done
}

# grow adds from the table: pid, parent, group, session.
grow() {
	all=$1
	shift
	while [ $# -ge 4 ]; do
		case "$pids" in *" $1 "*) member=known ;; *) member= ;; esac
		if [ -z "$member" ] && [ "$1" != "$witness" ]; then
			if [ "$3" = "$group" ] || [ "$4" = "$group" ]; then
				member=new
			elif [ -n "$all" ]; then
				case "$carriers" in *" $1 "*) member=new ;; esac
				case "$pids" in *" $2 "*) member=new ;; esac
			fi
		fi
		if [ "$member" = new ]; then
			pids="$pids$1 " grown=yes
		fi
		shift 4
	done
}

# now sets time to a number of hundredths of a second. Without a clock of that
# resolution, it counts the naps.
now() {
	{ IFS=' .' read -r whole part rest </proc/uptime; } 2>/dev/null &&
		time=$((whole * 100 + 1${part:-00} - 100)) || time=$napped
}

nap() {
	if sleep 0.05 2>/dev/null; then
		napped=$((napped + 5))
	else
		sleep 1
		napped=$((napped + 100))
	fi
}

# finish asks the processes to end, kills them after $2 hundredths of a second,
# and sets left to their number. $1 is passed to scan.
finish() {
	left=0 napped=0
	now
	end=$((time + $2))
	scan "$1"
	for pid in $pids; do left=$((left + 1)); done
	[ "$left" -gt 0 ] || return 0
	kill -TERM $pids 2>/dev/null
	while [ -n "$pids" ] && [ "$time" -lt "$end" ]; do
		nap
		scan "$1"
		now
	done
	end=$((time + 50))
	while [ -n "$pids" ] && [ "$time" -lt "$end" ]; do
		kill -KILL $pids 2>/dev/null
		nap
		scan "$1"
		now
	done
}
