# inner merged token dir input argv...: runs a command and tells on stderr,
# behind NUL and the token, that it started and how it ended. This shell is the
# witness of the end: it outlives signals to everybody.
trap : TERM HUP INT
inner=$1 merged=$2 token=$3 witness=$$
shift 2
# Descriptor 3 is the true stderr, 5 the true stdout, 4 takes the group that the
# command is in. Nothing that this shell itself says goes anywhere.
exec 3>&2 5>&1 2>/dev/null
if [ -n "$merged" ]; then
	group=$(exec sh -c "$inner" sh "$@" 4>&1 >&5 2>&5 5>&-)
else
	group=$(exec sh -c "$inner" sh "$@" 4>&1 >&5 2>&3 5>&-)
fi
status=$?
[ -n "$group" ] || exit 0
finish '' 20
printf '\000%s ended %s %s\n' "$token" "$status" "$left" >&3
