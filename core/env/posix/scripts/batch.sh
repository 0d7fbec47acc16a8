# token: for each line of code on stdin, a call of dirs or files, prints the
# answer. Nothing but the paths is read: symbolic links in them are refused.
token=$1

# refuse prints why $1 cannot be used, in the form of a result.
refuse() {
	if [ "$why" ]; then
		:
	elif why=$(stat -c %f "$1" 2>&1); then
		why='Permission denied'
	fi
	printf 'E%s\n' "${why##*
}"
}

# checked resolves $1, without a new process unless it has symbolic links.
checked() {
	why=
	resolve "$1"
	[ "$path" = "$1" ] || why='The path changed after it was checked'
	[ -z "$why" ]
}

batch() {
	[ $# -gt 0 ] || return 0
	printf B
	printf '%s\000' "$@" ''
	stat -c '%f %s %h %Y %y %n' "$@" 2>/dev/null
	printf '\000'
}

# dirs path...: for each directory prints batches as readdir.sh does, each after
# a B, and an empty line; or E and the reason.
dirs() {
	for dir; do
		(list "$dir")
	done
}

list() {
	checked "$1" && [ -e "$1" ] && [ ! -d "$1" ] && why='Not a directory'
	if [ "$why" ] || ! [ -r "$1" ] || ! cd "$1" 2>/dev/null; then
		refuse "$1"
		return
	fi
	set --
	for name in .[!.]* ..?* *; do
		[ -e "$name" ] || [ -L "$name" ] || continue
		set -- "$@" "./$name"
		[ $# -lt 200 ] || {
			batch "$@"
			set --
		}
	done
	batch "$@"
	echo
}

# files limit path...: for each file prints + or E and the reason, on a line. After
# that come the sizes, a NUL byte, the output of head, a NUL byte and the token.
files() {
	limit=$1 n=$(($# - 1))
	shift
	while [ "$n" -gt 0 ]; do
		n=$((n - 1))
		if checked "$1" && [ -f "$1" ] && [ -r "$1" ]; then
			echo +
			set -- "$@" "$1"
		else
			[ "$why" ] || [ ! -d "$1" ] || why='Is a directory'
			refuse "$1"
		fi
		shift
	done
	if [ $# -gt 0 ]; then
		stat -c %s "$@" 2>/dev/null
		printf '\000'
		head -v -c "$limit" "$@" 2>/dev/null
	else
		printf '\000'
	fi
	printf '\000%s\n' "$token"
}

while IFS= read -r line; do
	eval "$line"
done
exit 0
