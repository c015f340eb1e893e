# Date and time functions; the clock of the tests stands at 2024-03-01T12:30:00Z.
> GetCurrentDateTimeStatic()
"2024-03-01T12:30:00.0000000Z"
> GetCurrentTimestampStatic()
1709296200000
> GetCurrentTicksStatic()
17092962000000000
> GetCurrentDateTime()
"2024-03-01T12:30:00.0000000Z"
> DateTimeAdd("mm", 1, "2024-01-31T00:00:00.0000000Z")
"2024-02-29T00:00:00.0000000Z"
> DateTimeAdd("yyyy", -1, "2024-02-29T10:00:00.0000000Z")
"2023-02-28T10:00:00.0000000Z"
> DateTimeAdd("dd", 1, "2024-02-28T23:59:59.9999999Z")
"2024-02-29T23:59:59.9999999Z"
> DateTimeAdd("hh", -25, "2024-01-01T00:00:00Z")
"2023-12-30T23:00:00.0000000Z"
> DateTimeAdd("ms", 1500, "2024-01-01T00:00:00Z")
"2024-01-01T00:00:01.5000000Z"
> DateTimeAdd("ns", 100, "2024-01-01T00:00:00Z")
"2024-01-01T00:00:00.0000001Z"
> DateTimeAdd("xx", 1, "2024-01-01T00:00:00Z")
(none)
> DateTimeAdd("dd", 1.5, "2024-01-01T00:00:00Z")
(none)
> DateTimeAdd("dd", 1, "not a date")
(none)
> DateTimeDiff("yyyy", "2023-12-31T23:59:59Z", "2024-01-01T00:00:00Z")
1
> DateTimeDiff("mm", "2024-01-31T00:00:00Z", "2024-03-01T00:00:00Z")
2
> DateTimeDiff("dd", "2024-01-01T01:02:03Z", "2024-01-03T01:02:03Z")
2
> DateTimeDiff("hour", "2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z")
-24
> DateTimeDiff("ss", "2024-01-01T00:00:00Z", "2024-01-01T00:01:00.5Z")
60
> DateTimeDiff("ns", "2028-01-01T01:02:03.1234527Z", "2028-01-01T01:02:03.1234567Z")
4000
> DateTimeDiff("ns", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z")
315506361600000000000.0
> DateTimeDiff("mcs", "1960-01-01T00:00:00.0000019Z", "1960-01-01T00:00:00.000002Z")
1
> DateTimeDiff("ms", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.0015Z")
1
> DateTimeFromParts(2024, 2, 3)
"2024-02-03T00:00:00.0000000Z"
> DateTimeFromParts(2024, 2, 3, 4, 5, 6, 7000000)
"2024-02-03T04:05:06.7000000Z"
> DateTimeFromParts(2024, 2, 30)
(none)
> DateTimePart("yyyy", "2024-02-03T04:05:06.0070089Z")
2024
> DateTimePart("ms", "2024-02-03T04:05:06.0070089Z")
7
> DateTimePart("mcs", "2024-02-03T04:05:06.0070089Z")
7008
> DateTimePart("ns", "2024-02-03T04:05:06.0070089Z")
7008900
> DateTimeToTicks("2024-01-01T00:00:00.0000001Z")
17040672000000001
> DateTimeToTimestamp("2024-01-01T00:00:00.001Z")
1704067200001
> TicksToDateTime(17040672000000001)
"2024-01-01T00:00:00.0000001Z"
> TimestampToDateTime(1704067200001)
"2024-01-01T00:00:00.0010000Z"
> TimestampToDateTime(-1)
"1969-12-31T23:59:59.9990000Z"
> DateTimeBin("2024-01-08T18:35:00.0000000Z", "hh")
"2024-01-08T18:00:00.0000000Z"
> DateTimeBin("2024-01-08T18:35:00.0000000Z", "dd", 7)
"2024-01-04T00:00:00.0000000Z"
> DateTimeBin("2024-01-08T18:35:00.0000000Z", "hh", 5, "2024-01-01T00:00:00Z")
"2024-01-08T17:00:00.0000000Z"
> DateTimeBin("2024-05-08T18:35:00.0000000Z", "mm", 3)
"2024-04-01T00:00:00.0000000Z"
> DateTimeBin("2024-05-08T18:35:00.0000000Z", "hh", 1000000000)
"1970-01-01T00:00:00.0000000Z"
> DateTimeBin("2024-05-08T18:35:00.0000000Z", "dd", 1000000000, "2024-05-08T00:00:00Z")
"2024-05-08T00:00:00.0000000Z"
> DateTimeBin("1969-05-08T18:35:00.0000000Z", "dd", 1000000000)
(none)
> DAY("2024-02-03T00:00:00Z")
3
> MONTH("2024-02-03T00:00:00Z")
2
> YEAR("2024-02-03T00:00:00Z")
2024
> DateTimeFormat("2024-02-03T00:00:00Z", "yyyy")
"2024"
> NOW()
"2024-03-01T12:30:00.0000000Z"
> NOW("yyyy", 1)
"2025-03-01T12:30:00.0000000Z"
> NOW("dd", -1)
"2024-02-29T12:30:00.0000000Z"
> NOW("ss", 30)
"2024-03-01T12:30:30.0000000Z"
> NOW("ms", 4)
"2024-03-01T12:30:00.0040000Z"
> NOW("yyyy")
(none)
> NOW("parsec", 1)
(none)
> NOW("dd", "1")
(none)
> NOW("dd", 1, 2)
! SC2050 13-28 The NOW function requires 0 to 2 argument(s).
> AGO("yyyy", 1)
"2023-03-01T12:30:00.0000000Z"
> AGO("yyyy", -1)
"2025-03-01T12:30:00.0000000Z"
> AGO("mm", 12)
"2023-03-01T12:30:00.0000000Z"
> AGO("dd", 1)
"2024-02-29T12:30:00.0000000Z"
> AGO("ss", 30)
"2024-03-01T12:29:30.0000000Z"
> AGO("ms", 4)
"2024-03-01T12:29:59.9960000Z"
> AGO("hh", 0.5)
(none)
> AGO(null, 1)
(none)
> AGO("dd", undefined)
(none)
> AGO("dd")
! SC2050 13-22 The AGO function requires 2 argument(s).
> DateTimeFormat("2024-10-10 14:40:20", "yyyyMMdd")
"20241010"
> DateTimeFormat("2024-10-10 14:40:20", "yyyy-MM-dd [HH:mm:ss]")
"2024-10-10 [14:40:20]"
> DateTimeFormat("2024-10-10 14:40:20", "To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff")
"Today is: 2024-10-10T14:40:20.000"
> DateTimeFormat("2024-10-10 14:40:20", "To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.FFF")
"Today is: 2024-10-10T14:40:20."
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "y yy yyy yyyy yyyyy")
"24 24 2024 2024 02024"
> DateTimeFormat("2005-03-05", "y-M-d")
"5-3-5"
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "M MM MMM MMMM")
"3 03 Mar March"
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "d dd ddd dddd")
"5 05 Tue Tuesday"
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "H:m:s HH:mm:ss")
"4:7:9 04:07:09"
> DateTimeFormat("2024-03-05T00:07:09Z", "h hh tt t")
"12 12 AM A"
> DateTimeFormat("2024-03-05T12:00:00Z", "h hh tt t")
"12 12 PM P"
> DateTimeFormat("2024-03-05T23:00:00Z", "h tt")
"11 PM"
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "f ff fff ffff fffff ffffff fffffff")
"1 12 120 1203 12030 120300 1203000"
> DateTimeFormat("2024-03-05T04:07:09.1203000Z", "F FF FFF FFFF FFFFFFF")
"1 12 12 1203 1203"
> DateTimeFormat("2024-03-05T04:07:09Z", "'day' d 'of' MMMM")
"day 5 of March"
> DateTimeFormat("2024-03-05T04:07:09Z", "")
""
> DateTimeFormat("2024-03-05", "Q1 x")
"Q1 x"
> DateTimeFormat("2024-03-05T10:00:00+02:00", "HH")
"08"
> DateTimeFormat("no date", "yyyy")
(none)
> DateTimeFormat("2024-13-05", "yyyy")
(none)
> DateTimeFormat(1, "yyyy")
(none)
> DateTimeFormat("2024-03-05", 1)
(none)
> DateTimeFormat("2024-03-05")
! SC2050 13-41 The DateTimeFormat function requires 2 argument(s).
> IS_DATETIME("2024-03-05T4:07:09Z")
false
> IS_DATETIME("2024-03-05T04:07:09,5Z")
false
> IS_DATETIME("2024-03-05T04:07:09.5Z")
true
> IS_DATETIME("2024-03-05 04:07:09Z")
false
> IS_DATETIME("2024-03-05T04:07Z")
false
> IS_DATETIME("2024-03-05+01:00")
false
