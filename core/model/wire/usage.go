package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/seed-009c0928/agent/core/model"
)

// maxTokens is the largest plausible token count of one call.
const maxTokens = 100_000_000

// Count is a token count of a service. Some send it as text or with a fraction;
// whatever is not a plausible count is 0. Decoding never fails.
type Count int

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Count) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(string(bytes.Trim(data, `" `)), 64)
	if *c = 0; err == nil && n >= 0 && n <= maxTokens {
		*c = Count(n)
	}
	return nil
}

// Lenient decodes data into v, which stays as it is if data has another form.
func Lenient[T any](data []byte, v *T) error {
	var decoded T
	if json.Unmarshal(data, &decoded) == nil {
		*v = decoded
	}
	return nil
}

// plausible returns the usage without counts that cannot be true.
func plausible(u model.Usage) model.Usage {
	for _, n := range []*int{&u.Input, &u.CachedInput, &u.CacheWrite, &u.Output, &u.Reasoning} {
		if *n < 0 || *n > 4*maxTokens { // sums of up to four counts
			*n = 0
		}
	}
	u.CachedInput = min(u.CachedInput, u.Input)
	u.CacheWrite = min(u.CacheWrite, u.Input-u.CachedInput)
	u.Reasoning = min(u.Reasoning, u.Output)
	return u
}
