# exact path: prints batches of NUL-terminated names, an empty name, and their
# lines of stat, terminated by NUL. A file removed meanwhile has no line.
find "$1" "$2"
meta "$path" >/dev/null || exit 9
[ -d "$path" ] || die 'Not a directory'
[ -r "$path" ] || die 'Permission denied'
cd "$path" || exit 9
batch() {
	[ $# -gt 0 ] || return 0
	printf '%s\000' "$@" ''
	stat -c '%f %s %h %Y %y %n' "$@" 2>/dev/null
	printf '\000'
}
set --
for name in .[!.]* ..?* *; do
	# A pattern without matches stays unexpanded.
	[ -e "$name" ] || [ -L "$name" ] || continue
	set -- "$@" "./$name"
	[ $# -lt 200 ] || {
		batch "$@"
		set --
	}
done
batch "$@"
exit 0
