package store

import (
	"fmt"
	"io/fs"
	"strings"
)

const maxID = 128

// CheckID returns an error, an fs.ErrInvalid, unless id is a valid session id:
// up to 128 letters, digits, - and _, beginning with a letter or digit, and not
// a device name of Windows. So no id leads out of a directory.
func CheckID(id string) error {
	if !validID(id) {
		return fmt.Errorf("session id %.40q: expected 1 to %d letters, digits, - and _: %w", id, maxID, fs.ErrInvalid)
	}
	return nil
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || id[0] == '-' || id[0] == '_' {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !alphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	switch upper := strings.ToUpper(id); upper {
	case "CON", "PRN", "AUX", "NUL":
		return false
	default:
		device := len(upper) == 4 && (upper[:3] == "COM" || upper[:3] == "LPT")
		return !device || upper[3] < '0' || upper[3] > '9'
	}
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
