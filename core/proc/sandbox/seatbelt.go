package sandbox

import "strings"

// seatbeltProfile returns the profile for sandbox-exec, in Apple's profile
// language. It can only allow and deny by path; later rules win.
func seatbeltProfile(p *Profile, l *layout, tmp string) string {
	var b strings.Builder
	b.WriteString(`(version 1)
(allow default)
(deny file-write*)
(deny process-info*)
(allow process-info* (target same-sandbox))
(deny signal)
(allow signal (target same-sandbox))
(deny mach-priv*)
(deny mach-task-name)
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
(deny iokit-open)
(allow file-write*
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/dtracehelper")
  (regex #"^/dev/fd/[0-9]+$"))
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero"))
`)
	rule := func(verdict, operation, filter, path string) {
		b.WriteString("(" + verdict + " " + operation + " (" + filter + " " + seatbeltString(path) + "))\n")
	}
	for _, path := range append([]string{tmp}, l.writable...) {
		rule("allow", "file-write*", "subpath", path)
	}
	for _, dir := range l.holds {
		rule("deny", "file-write-unlink", "literal", dir)
	}
	for _, pin := range l.pins {
		rule("deny", "file-write*", "subpath", pin.path)
	}
	for _, w := range l.writable { // writable paths below a pin
		for _, pin := range l.pins {
			if w != pin.path && Below(pin.path, w) {
				rule("allow", "file-write*", "subpath", w)
			}
		}
	}
	for _, m := range l.masked {
		rule("deny", "file-read* file-write*", "subpath", m.path)
	}
	if !p.Network.Full {
		b.WriteString("(deny network*)\n")
		if p.Network.Serve {
			for _, path := range append([]string{tmp}, l.writable...) {
				rule("allow", "network-bind network-inbound", "subpath", path)
			}
		}
	} else {
		b.WriteString("(deny network-outbound (subpath \"/\"))\n") // sockets in the file system
		b.WriteString("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n")
	}
	return b.String()
}

// seatbeltString quotes a path.
func seatbeltString(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
