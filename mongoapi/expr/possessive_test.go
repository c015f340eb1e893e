package expr

import "testing"

// TestPossessive: possessive quantifiers become atomic groups, and nothing else changes.
func TestPossessive(t *testing.T) {
	for in, want := range map[string]string{
		`a*+b`: `(?>a*)b`, `a++`: `(?>a+)`, `xa?+a`: `x(?>a?)a`, `a{2}+`: `(?>a{2})`, `a{2,3}+b`: `(?>a{2,3})b`,
		`(ab)*+c`: `(?>(ab)*)c`, `((a)++b)++`: `(?>((?>(a)+)b)+)`, `[a+]*+`: `(?>[a+]*)`, `[]+]++`: `(?>[]+]+)`,
		`[^]a]++`: `(?>[^]a]+)`, `[[:alpha:]+]++`: `(?>[[:alpha:]+]+)`, `\d++`: `(?>\d+)`, `\++`: `\++`, `\p{L}++`: `(?>\p{L}+)`,
		`ü++`: `(?>ü+)`, `(?i)a++`: `(?i)(?>a+)`, `(?:a|b)++`: `(?>(?:a|b)+)`, `(?=a++)b`: `(?=(?>a+))b`,
		`a*b`: `a*b`, `a*?+`: `a*?+`, `a{,3}+`: `a{,3}+`, `a{x}+`: `a{x}+`, `(?#a++)b`: `(?#a++)b`, `\Qa++\E+`: `\Qa++\E+`,
		`(a`: `(a`, `a)`: `a)`, `[a`: `[a`, `\`: `\`, ``: ``, `(?<n>a)++\k<n>`: `(?>(?<n>a)+)\k<n>`,
	} {
		if got := possessive(in); got != want {
			t.Errorf("%s: %s, wanted %s", in, got, want)
		}
	}
	for pattern, texts := range map[string]map[string]bool{
		`^a*+a`: {"aaa": false}, `^a?+a$`: {"a": false, "aa": true}, `^(?:ab|a)++b`: {"aab": false},
		`^"[^"]*+"$`: {`"abc"`: true, `"abc`: false}, `^\d{1,3}+\d`: {"123": false, "1234": true},
	} {
		p, _, err := Regexp(pattern, "")
		if err != nil {
			t.Fatal(pattern, err)
		}
		for text, want := range texts {
			if got := (*Run)(nil).Match(p, []byte(text)); got != want {
				t.Errorf("%s on %s: %v", pattern, text, got)
			}
		}
	}
}
