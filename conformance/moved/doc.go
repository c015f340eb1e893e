// Package moved tests clients of all APIs while their store is moved to other places, between directories and stores
// that several processes share. What they hold must go on at each place, or end with their protocol's error.
package moved
