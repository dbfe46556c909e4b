//go:build race

package lifetest

// raceEnabled: the detector multiplies memory and time.
const raceEnabled = true
