# exact path limit: prints the output of stat, and the content of a small file. A
# larger file stays open: for each line "block count" on stdin it prints that many
# blocks of 64 KiB, padded with zeros, and the size of the file.
find "$1" "$2"
meta "$path" >/dev/null || exit 9
[ ! -d "$path" ] || die 'Is a directory'
[ -f "$path" ] || die 'It is a special file, not a regular file'
[ -r "$path" ] || die 'Permission denied'
exec 3<"$path"
printf '%s\000' "$path"
file=/proc/self/fd/3
stat -L -c '%f %s %h %Y %y' $file || exit 9
if [ "$(stat -L -c %s $file)" -le "$3" ]; then
	cat <&3 || exit 9
	exit 0
fi
while read -r block count; do
	{
		dd if=$file bs=65536 skip="$block" count="$count"
		dd if=/dev/zero bs=65536 count="$count"
	} 2>/dev/null | head -c $((count * 65536))
	stat -L -c %s $file || exit 9
done
exit 0
