import com.ibm.icu.impl.coll.CollationSettings;
import com.ibm.icu.impl.coll.SharedObject;
import com.ibm.icu.text.Collator;
import com.ibm.icu.text.Normalizer2;
import com.ibm.icu.text.RuleBasedCollator;
import com.ibm.icu.text.UnicodeSet;
import com.ibm.icu.util.ULocale;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.util.*;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * Dump writes the file data.bin of package collate from the tables of ICU4J. See the package's table.go for the format.
 *
 * Usage: java Dump data.bin [locales to leave out ..]
 */
public class Dump {
    static final Normalizer2 NFD = Normalizer2.getNFDInstance();

    /** Out is a growing list of varints. */
    static class Out {
        final ByteArrayOutputStream b = new ByteArrayOutputStream();

        void num(long v) {
            while ((v & ~0x7fL) != 0) {
                b.write((int) (v & 0x7f | 0x80));
                v >>>= 7;
            }
            b.write((int) v);
        }

        void signed(long v) {
            num(v << 1 ^ v >> 63);
        }

        void text(String s) throws Exception {
            byte[] u = s.getBytes("UTF-8");
            num(u.length);
            b.write(u);
        }
    }

    static final Map<Long, Integer> weights = new LinkedHashMap<>(); // secondary, case, tertiary, quaternary

    /** entries writes runs of code points, or strings, with their collation elements. */
    static void entries(Out out, SortedMap<int[], long[]> m) {
        out.num(m.size());
        // Columns compress better than rows.
        Out strings = new Out(), counts = new Out(), primaries = new Out(), rest = new Out();
        int last = 0;
        long p = 0;
        for (Map.Entry<int[], long[]> e : m.entrySet()) {
            int[] key = e.getKey();
            strings.num(key.length);
            strings.signed(key[0] - last);
            last = key[0];
            for (int i = 1; i < key.length; i++) {
                strings.num(key[i]);
            }
            counts.num(e.getValue().length);
            for (long ce : e.getValue()) {
                long q = ce >>> 32;
                primaries.signed(q - p);
                p = q;
                Long w = ce & 0xffffffffL;
                Integer n = weights.get(w);
                if (n == null) {
                    weights.put(w, n = weights.size());
                }
                rest.num(n);
            }
        }
        for (Out o : new Out[] {strings, counts, primaries, rest}) {
            out.num(o.b.size());
            out.b.write(o.b.toByteArray(), 0, o.b.size());
        }
    }

    static SortedMap<int[], long[]> newMap() {
        return new TreeMap<>((x, y) -> {
            for (int i = 0; i < x.length && i < y.length; i++) {
                if (x[i] != y[i]) {
                    return Integer.compare(x[i], y[i]);
                }
            }
            return Integer.compare(x.length, y.length);
        });
    }

    static CollationSettings settings(RuleBasedCollator c) throws Exception {
        Field f = RuleBasedCollator.class.getDeclaredField("settings");
        f.setAccessible(true);
        return (CollationSettings) ((SharedObject.Reference<?>) f.get(c)).readOnly();
    }

    static Object data(RuleBasedCollator c) throws Exception {
        Field f = RuleBasedCollator.class.getDeclaredField("data");
        f.setAccessible(true);
        return f.get(c);
    }

    static RuleBasedCollator collator(String name) {
        try {
            return (RuleBasedCollator) Collator.getInstance(new ULocale(name));
        } catch (RuntimeException e) {
            return null;
        }
    }

    static Set<String> strings(RuleBasedCollator c) throws Exception {
        UnicodeSet all = new UnicodeSet(), tailored = c.getTailoredSet();
        c.getContractionsAndExpansions(all, null, true);
        all.addAll(tailored);
        Set<String> out = new HashSet<>();
        for (String s : all) {
            out.add(NFD.normalize(s));
        }
        return out;
    }

    public static void main(String[] args) throws Exception {
        Set<String> without = new HashSet<>(Arrays.asList(args).subList(1, args.length));
        RuleBasedCollator root = (RuleBasedCollator) Collator.getInstance(ULocale.ROOT);
        SortedMap<int[], long[]> rootMap = newMap();
        for (int cp = 0; cp <= 0x10ffff; cp++) {
            if (cp >= 0xd800 && cp < 0xe000 || NFD.getDecomposition(cp) != null) {
                continue;
            }
            long[] ces = root.internalGetCEs(new String(Character.toChars(cp)));
            if (ces.length == 1 && ces[0] >>> 56 == 0xfe) {
                continue; // unassigned
            }
            rootMap.put(new int[] {cp}, ces);
        }
        for (String s : strings(root)) {
            int[] cps = s.codePoints().toArray();
            if (cps.length > 1) {
                rootMap.put(cps, root.internalGetCEs(s));
            }
        }
        Out tables = new Out();
        entries(tables, rootMap);

        Set<String> names = new TreeSet<>();
        for (ULocale l : Collator.getAvailableULocales()) {
            if (l.getName().isEmpty()) {
                continue;
            }
            names.add(l.getName());
            for (String type : Collator.getKeywordValuesForLocale("collation", l, false)) {
                if (!type.startsWith("private")) {
                    names.add(l.getName() + "@collation=" + type);
                }
            }
        }
        Map<String, Integer> known = new LinkedHashMap<>(); // contents of tables
        RuleBasedCollator search = collator("root@collation=search");
        SortedMap<int[], long[]> searched = newMap(); // what the type search changes in all locales
        for (String s : strings(search)) {
            long[] ces = search.internalGetCEs(s);
            if (!Arrays.equals(ces, root.internalGetCEs(s))) {
                searched.put(s.codePoints().toArray(), ces);
            }
        }
        entries(tables, searched);
        Out locales = new Out();
        int n = 1, count = 0;
        for (String name : names) {
            RuleBasedCollator c = collator(name);
            String base = name.split("@")[0];
            if (c == null || without.contains(name.replaceAll(".*@", "@")) || without.contains(name) || !c.getLocale(ULocale.VALID_LOCALE).getBaseName().equals(base)) {
                continue;
            }
            if (name.contains("=")) { // the types that a locale hasn't are those of the root
                String type = name.substring(name.indexOf('=') + 1);
                String got = c.getLocale(ULocale.VALID_LOCALE).getKeywordValue("collation");
                if (System.getenv("VERBOSE") != null) {
                    System.err.println(name + " " + c.getLocale(ULocale.VALID_LOCALE) + " "
                            + c.getLocale(ULocale.ACTUAL_LOCALE));
                }
                if (!type.equals(got)) {
                    continue;
                }
            }
            SortedMap<int[], long[]> m = newMap();
            RuleBasedCollator from = name.endsWith("=search") ? search : root;
            Set<String> all = strings(c);
            all.addAll(strings(from));
            for (String s : all) {
                long[] ces = c.internalGetCEs(s);
                if (!Arrays.equals(ces, from.internalGetCEs(s))) {
                    m.put(s.codePoints().toArray(), ces);
                }
            }
            int index = 0;
            if (!m.isEmpty()) {
                StringBuilder id = new StringBuilder();
                for (Map.Entry<int[], long[]> e : m.entrySet()) {
                    id.append(Arrays.toString(e.getKey())).append(Arrays.toString(e.getValue()));
                }
                Integer old = known.get(id.toString());
                if (old == null) {
                    entries(tables, m);
                    known.put(id.toString(), old = ++n);
                    System.err.println(name + ": " + m.size() + " entries");
                    
                }
                index = old;
            }
            CollationSettings s = settings(c);
            locales.text(name);
            locales.num(index);
            locales.num(from == search ? 1 : 0);
            locales.num((c.isCaseLevel() ? 1 : 0) | (c.isUpperCaseFirst() ? 2 : 0) | (c.isLowerCaseFirst() ? 4 : 0)
                    | (c.getNumericCollation() ? 8 : 0) | (c.isAlternateHandlingShifted() ? 16 : 0)
                    | (c.getDecomposition() != Collator.NO_DECOMPOSITION ? 32 : 0) | (c.isFrenchCollation() ? 64 : 0));
            locales.num(c.getStrength() + 1);
            if (!s.hasReordering()) {
                locales.num(0);
            } else {
                locales.num(1);
                Field f = CollationSettings.class.getDeclaredField("minHighNoReorder");
                f.setAccessible(true);
                locales.num(f.getLong(s));
                f = CollationSettings.class.getDeclaredField("reorderRanges");
                f.setAccessible(true);
                long[] ranges = (long[]) f.get(s);
                for (int i = 0; i < 256; i++) {
                    locales.num(s.reorderTable[i] & 0xff);
                }
                locales.num(ranges == null ? 0 : ranges.length);
                for (int i = 0; ranges != null && i < ranges.length; i++) {
                    locales.num(ranges[i]);
                }
            }
            count++;
        }
        Out all = new Out();
        RuleBasedCollator r = (RuleBasedCollator) root.cloneAsThawed();
        r.setMaxVariable(Collator.ReorderCodes.SPACE);
        all.num(r.getVariableTop() & 0xffffffffL);
        r.setMaxVariable(Collator.ReorderCodes.PUNCTUATION);
        all.num(r.getVariableTop() & 0xffffffffL);
        all.num(weights.size());
        for (long w : weights.keySet()) {
            all.num(w);
        }
        all.num(n + 1);
        all.b.write(tables.b.toByteArray());
        all.num(count);
        all.b.write(locales.b.toByteArray());
        try (DeflaterOutputStream d = new DeflaterOutputStream(new FileOutputStream(args[0]),
                new Deflater(Deflater.BEST_COMPRESSION, true))) {
            d.write(all.b.toByteArray());
        }
        System.err.println(count + " locales, " + (n + 1) + " tables, " + all.b.size() + " bytes before compression");
    }
}
