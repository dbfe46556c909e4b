//go:build !race

package lifetest

const raceEnabled = false
