# exact path root...
find "$1" "$2"
shift 2
apart "$path" "$@"
meta "$path" >/dev/null || exit 9
if [ -d "$path" ]; then
	rmdir "$path" || exit 9
else
	rm -f "$path" || exit 9
fi
