# inner merged token dir input argv...: runs a command and reports on stderr,
# after NUL and the token, that it started and how it ended. This shell is the
# witness: it survives signals to the group.
trap : TERM HUP INT
inner=$1 merged=$2 token=$3 witness=$$
shift 2
# Descriptor 3 is the real stderr, 5 the real stdout, 4 receives the command's
# group. This shell's own messages are discarded.
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
[ "$3" != terminal ] || IFS= read -r answer # it was received
