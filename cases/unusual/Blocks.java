/**
 * Blocks of memory in Java: the heap grows and shrinks, or stays.
 *
 *     java OPTIONS Blocks VARIANT [ROUNDS]
 *
 *     each   in every round 32 MiB of arrays are made and written, dropped, and System.gc() is called
 *     kept   its twin: the arrays are made once, and written in every round
 *     direct in every round a direct buffer of 4 MiB is made, written and freed: memory outside of the heap, by malloc
 *
 * Prints one line: rounds, the pages that they write, the process's minor faults meanwhile as the kernel counted them.
 */
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

public final class Blocks {
    static final int PAGE = 4096, ARRAY = 1 << 20, ARRAYS = 32, DIRECT = 4 << 20;
    static byte[][] arrays;

    static long minorFaults() throws Exception {
        String stat = Files.readString(Path.of("/proc/self/stat"));
        return Long.parseLong(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[7]);
    }

    static byte[][] newArrays() {
        byte[][] made = new byte[ARRAYS][];
        for (int i = 0; i < ARRAYS; i++) made[i] = new byte[ARRAY];
        return made;
    }

    static void fill(byte[][] arrays, int round) {
        for (byte[] array : arrays) for (int at = 0; at < array.length; at += PAGE) array[at] = (byte) (round | 1);
    }

    static sun.misc.Unsafe unsafe() throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return (sun.misc.Unsafe) field.get(null);
    }

    static void direct(sun.misc.Unsafe unsafe, int round) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(DIRECT);
        for (int at = 0; at < DIRECT; at += PAGE) buffer.put(at, (byte) (round | 1));
        unsafe.invokeCleaner(buffer);
    }

    public static void main(String[] words) throws Exception {
        String variant = words.length > 0 ? words[0] : "";
        int rounds = words.length > 1 ? Integer.parseInt(words[1]) : 30;
        boolean each = variant.equals("each"), kept = variant.equals("kept"), direct = variant.equals("direct");
        if (!(each || kept || direct) || rounds < 1) {
            System.err.println("usage: Blocks each|kept|direct [ROUNDS]");
            System.exit(2);
        }
        sun.misc.Unsafe unsafe = unsafe();
        if (kept) {
            arrays = newArrays();
            fill(arrays, 0);
        }
        System.gc();
        long faults = minorFaults();
        for (int round = 0; round < rounds; round++) {
            if (each) arrays = newArrays();
            if (direct) direct(unsafe, round);
            else fill(arrays, round);
            if (each) {
                arrays = null;
                System.gc();
            }
        }
        faults = minorFaults() - faults;
        long pages = (long) rounds * (direct ? DIRECT : ARRAYS * ARRAY) / PAGE;
        System.out.println(variant + " rounds=" + rounds + " pages=" + pages + " minflt=" + faults);
    }
}
