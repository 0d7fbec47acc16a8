# token dir input argv...: becomes the command. The first line of stdin sets its
# environment, as a command line would be visible to others. After that, only
# the arguments are reliable, not the variables.
IFS= read -r header || exit 0
case $3 in
terminal) set -- '' "$@" ;; # a new session would have no terminal
*) set -- "$(command -v setsid)" "$@" ;;
esac
cd -P "$3" 2>/dev/null || {
	printf '\000%s refused dir\n' "$2" >&3
	exit 0
}
export PWD
eval "$header"
case $5 in
*/*) [ -f "$5" ] && [ -x "$5" ] ;;
*) command -v "$5" >/dev/null 2>&1 ;;
esac || {
	printf '\000%s refused program\n' "$2" >&3
	exit 0
}
[ "$4" != terminal ] || stty sane -echo -opost # before it is said that it started
if [ -n "$1" ]; then
	printf %s "$$" >&4
	printf '\000%s started %s %s\n' "$2" "$$" "$PPID" >&3
else
	printf %s "$PPID" >&4
	printf '\000%s started %s %s\n' "$2" "$PPID" "$PPID" >&3
fi
[ -n "$4" ] || exec </dev/null
if [ -n "$1" ]; then
	agent_setsid_=$1
	shift 4
	exec "$agent_setsid_" "$@" 3>&- 4>&-
fi
shift 4
exec "$@" 3>&- 4>&-
