import com.ibm.icu.text.*;
import com.ibm.icu.util.ULocale;
import java.util.*;

/** Vectors prints test cases for package collate: words as ICU sorts them. Usage: java Vectors >../testdata/icu */
public class Vectors {
    static final String[][] WORDS = {
        {"latin", "cote", "côte", "coté", "côté", "Cote", "COTE", "cotE", "co-te", "co te", "c o t e", "co_te", "résumé", "resume",
            "Resume", "RESUME", "a", "A", "á", "Á", "ä", "Ä", "ae", "Ae", "AE", "æ", "Æ", "å", "Å", "aa", "Aa", "AA", "az", "o", "ö", "Ö",
            "ø", "Ø", "oe", "œ", "ó", "ő", "u", "ü", "Ü", "ue", "ß", "ss", "SS", "ẞ", "z", "ž", "Ž", "zs", "c", "č", "ç", "ch", "Ch", "CH", "cz",
            "h", "i", "I", "ı", "İ", "j", "y", "ý", "ll", "lz", "ľ", "ł", "l·l", "n", "ñ", "ny", "nz", "š", "sz", "þ", "th", "đ", "ð", "d", "dž", "dz", "", " ", "-", "_", "!",
            "1", "2", "10", "02", "1a", "x10", "x9", "x010", "file2.txt", "file10.txt", "$", "€", "٣", "123456", "99999", "\u00a0", "a\u0323\u030a", "ﬁ", "fi", "Ａ", "①"},
        {"other", "а", "б", "в", "е", "ё", "ж", "и", "й", "и\u0306", "я", "Я", "і", "ї", "α", "ά", "β", "ω", "א", "ב", "ا", "ب", "أ", "آ", "あ", "ア", "ｱ", "か", "が", "ガ", "カー", "カア", "きょ", "きよ",
            "漢", "字", "一", "丁", "中", "文", "北", "京", "上", "海", "가", "각", "나", "하", "한글", "ㄱ", "ไ", "ก", "เก", "แก", "กเ", "ข", "ា", "ក", "क", "ख", "क्ष", "a", "z", "Z", "0", "9", "٠", "𠀀", "😀", "\u0378", "\uffff"},
    };

    static final String[] SPECS = {
        "en 3", "en 1", "en 2", "en 4", "en 5", "en 1 caseLevel", "en 2 caseLevel", "en 3 upper", "en 3 lower", "en 3 numeric", "en 1 numeric",
        "en 3 shifted", "en 4 shifted", "en 1 shifted", "en 2 shifted space", "en 4 shifted space", "en 1 caseLevel upper", "en 3 backwards", "fr_CA 3", "fr 2", "de 3",
        "de@collation=phonebook 3", "de@collation=phonebook 1", "sv 3", "da 3", "da 1", "nb 3", "es 3", "es@collation=traditional 3", "cs 3", "sk 2", "hu 3", "pl 3",
        "tr 3", "lt 3", "et 3", "hr 3", "cy 3", "is 3", "fi 3", "ro 3", "vi 3", "ru 3", "uk 3", "el 3", "he 3", "ar 3", "th 3", "ja 3", "ja 4", "zh 3",
        "zh_Hant 3", "ko 3", "hi 3", "km 3", "en_US_POSIX 3", "ca 3", "lv 3", "sq 3", "mt 3", "de@collation=search 3", "sr 3", "bg 3", "ja 1", "az 3", "sl 3", "ko@collation=search 1",
    };

    public static void main(String[] args) throws Exception {
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        out.println("# Made by gen/Vectors.java with ICU4J 57.1.");
        for (String[] words : WORDS) {
            for (String spec : SPECS) {
                String[] f = spec.split(" ");
                RuleBasedCollator c = (RuleBasedCollator) Collator.getInstance(new ULocale(f[0])).clone();
                c.setDecomposition(Collator.CANONICAL_DECOMPOSITION);
                int n = Integer.parseInt(f[1]);
                c.setStrength(n == 5 ? Collator.IDENTICAL : n - 1);
                for (int i = 2; i < f.length; i++) {
                    switch (f[i]) {
                        case "caseLevel": c.setCaseLevel(true); break;
                        case "upper": c.setUpperCaseFirst(true); break;
                        case "lower": c.setLowerCaseFirst(true); break;
                        case "numeric": c.setNumericCollation(true); break;
                        case "shifted": c.setAlternateHandlingShifted(true); break;
                        case "space": c.setMaxVariable(Collator.ReorderCodes.SPACE); break;
                        case "backwards": c.setFrenchCollation(true); break;
                    }
                }
                List<String> list = new ArrayList<>(Arrays.asList(words).subList(1, words.length));
                list.sort((a, b) -> {
                    int r = c.getCollationKey(a).compareTo(c.getCollationKey(b));
                    return r != 0 ? r : a.compareTo(b);
                });
                out.println("\nsort " + words[0] + " " + spec);
                out.println("----");
                StringBuilder line = new StringBuilder();
                for (int i = 0; i < list.size(); i++) {
                    String w = "\"" + list.get(i).replace("\u00a0", "\\u00a0").replace("\u0378", "\\u0378").replace("\uffff", "\\uffff") + "\"";
                    String rel = i == 0 ? "" : c.getCollationKey(list.get(i - 1)).compareTo(c.getCollationKey(list.get(i))) == 0 ? " = " : " < ";
                    if (line.length() + w.length() > 100) {
                        out.println(line.toString().trim());
                        line.setLength(0);
                    }
                    line.append(rel).append(w);
                }
                out.println(line.toString().trim());
            }
        }
    }
}
