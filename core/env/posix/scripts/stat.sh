# exact path
find "$1" "$2"
meta "$path" || exit 9
printf '%s' "$path"
