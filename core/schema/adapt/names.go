package adapt

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const maxPropertyName = 64

// PropertyNames returns the names that may stand for a property in adapted
// schemas, best first; nothing if the property's own is valid everywhere. The
// arguments of a call have one of them.
func PropertyNames(name string) []string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, name)
	if plain == name && len(name) <= maxPropertyName && name != "" {
		return nil
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:4])
	hashed := plain[:min(len(plain), maxPropertyName-len(hash)-1)] + "_" + hash
	if strings.Trim(plain, "_") == "" || len(plain) > maxPropertyName {
		return []string{hashed}
	}
	return []string{plain, hashed}
}
