package compare

import (
	"encoding/json"
	"math"
)

// Number is a float64 that JSON shows as null where it is none or not finite.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n Number) known() bool { return !math.IsNaN(float64(n)) }

// orInf is infinite where there is no number.
func (n Number) orInf() float64 {
	if !n.known() {
		return math.Inf(1)
	}
	return float64(n)
}
