import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.lang.model.element.*;
import javax.tools.*;

/**
 * Prints what javac knows of a directory with Java sources, as reference facts for
 * "agent graph bench --truth". What other libraries declare is unknown to it.
 *
 * usage: java Reference.java DIRECTORY
 */
public class Reference {
    static Path root;
    static Trees trees;
    static final PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);
    static final Map<String, Set<String>> unknown = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        root = Paths.get(args[0]).toRealPath();
        List<File> files;
        try (Stream<Path> s = Files.walk(root)) {
            files = s.filter(p -> p.toString().endsWith(".java") && !p.endsWith("module-info.java") && !p.endsWith("package-info.java")).map(Path::toFile).sorted().collect(Collectors.toList());
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8);
        JavacTask task = (JavacTask) compiler.getTask(null, manager, d -> { }, List.of("-proc:none", "-nowarn"), null, manager.getJavaFileObjectsFromFiles(files));
        trees = Trees.instance(task);
        List<CompilationUnitTree> units = new ArrayList<>();
        task.parse().forEach(units::add);
        task.analyze();
        for (CompilationUnitTree u : units) {
            new Scanner(u).scan(u, null);
        }
        out.flush();
    }

    static String file(CompilationUnitTree u) {
        return root.relativize(Paths.get(u.getSourceFile().toUri())).toString();
    }

    static String quote(String s) {
        return '"' + s.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    /** The dotted name of a class or method within its file. */
    static String name(Element e) {
        Deque<String> parts = new ArrayDeque<>();
        for (; e != null && e.getKind() != ElementKind.PACKAGE; e = e.getEnclosingElement()) {
            String n = e.getSimpleName().toString();
            if (n.isEmpty()) {
                return null; // anonymous
            }
            if (n.equals("<init>")) {
                n = e.getEnclosingElement().getSimpleName().toString();
            }
            parts.addFirst(n);
        }
        return String.join(".", parts);
    }

    static class Scanner extends TreePathScanner<Void, Void> {
        final CompilationUnitTree unit;
        final String file;
        final Deque<String> scope = new ArrayDeque<>();
        final Map<String, Set<String>> unknown = new TreeMap<>();

        Scanner(CompilationUnitTree u) {
            unit = u;
            file = Reference.file(u);
            out.printf("{\"kind\":\"file\",\"file\":%s}%n", quote(file));
        }

        @Override public Void visitCompilationUnit(CompilationUnitTree u, Void v) {
            super.visitCompilationUnit(u, v);
            unknown.forEach((name, names) -> out.printf("{\"kind\":\"caller\",\"file\":%s,\"name\":%s,\"unknown\":[%s]}%n", quote(file), quote(name), names.stream().map(Reference::quote).collect(Collectors.joining(","))));
            return null;
        }

        @Override public Void visitImport(ImportTree t, Void v) {
            Tree id = t.getQualifiedIdentifier();
            Element e = trees.getElement(new TreePath(new TreePath(getCurrentPath(), id), id));
            if (id instanceof MemberSelectTree && (e == null || e.getKind() == ElementKind.PACKAGE || t.isStatic())) {
                Tree outer = ((MemberSelectTree) id).getExpression();
                Element o = trees.getElement(new TreePath(new TreePath(getCurrentPath(), id), outer));
                e = t.isStatic() ? o : e;
            }
            TreePath p = e == null || e.getKind() == ElementKind.PACKAGE ? null : trees.getPath(e);
            if (p != null && !Reference.file(p.getCompilationUnit()).equals(file)) {
                out.printf("{\"kind\":\"import\",\"file\":%s,\"to\":%s}%n", quote(file), quote(Reference.file(p.getCompilationUnit())));
            }
            return null;
        }

        void define(Element e, Runnable inner) {
            String name = e == null ? null : name(e);
            if (name == null) {
                inner.run();
                return;
            }
            out.printf("{\"kind\":\"definition\",\"file\":%s,\"name\":%s}%n", quote(file), quote(name));
            scope.push(name);
            unknown.computeIfAbsent(name, n -> new TreeSet<>());
            inner.run();
            scope.pop();
        }

        @Override public Void visitClass(ClassTree t, Void v) {
            define(trees.getElement(getCurrentPath()), () -> super.visitClass(t, v));
            return null;
        }

        @Override public Void visitMethod(MethodTree t, Void v) {
            if (trees.getSourcePositions().getEndPosition(unit, t) < 0 || trees.getSourcePositions().getStartPosition(unit, t) == trees.getSourcePositions().getStartPosition(unit, getCurrentPath().getParentPath().getLeaf())) {
                return null; // a default constructor
            }
            define(trees.getElement(getCurrentPath()), () -> super.visitMethod(t, v));
            return null;
        }

        void call(Tree callee, String name) {
            String from = scope.isEmpty() ? "" : scope.peek();
            Element e = trees.getElement(new TreePath(getCurrentPath(), callee));
            if (e == null || e.asType().getKind() == javax.lang.model.type.TypeKind.ERROR) {
                unknown.computeIfAbsent(from, n -> new TreeSet<>()).add(name);
                return;
            }
            TreePath p = trees.getPath(e);
            String to = name(e);
            if (p == null && e.getKind() == ElementKind.CONSTRUCTOR) {
                p = trees.getPath(e.getEnclosingElement());
                to = name(e.getEnclosingElement());
            }
            if (p != null && to != null) {
                boolean made = e.getKind() == ElementKind.CONSTRUCTOR;
                out.printf("{\"kind\":\"call\",\"file\":%s,\"name\":%s,\"to\":%s,\"toName\":%s,\"how\":%s}%n", quote(file), quote(from), quote(Reference.file(p.getCompilationUnit())),
                    quote(made ? name(e.getEnclosingElement()) : to), quote(made || e.getModifiers().contains(Modifier.STATIC) ? "static" : "method"));
            }
        }

        @Override public Void visitMethodInvocation(MethodInvocationTree t, Void v) {
            Tree s = t.getMethodSelect();
            String text = s.toString();
            call(s, text.substring(text.lastIndexOf('.') + 1));
            return super.visitMethodInvocation(t, v);
        }

        @Override public Void visitNewClass(NewClassTree t, Void v) {
            String text = t.getIdentifier().toString().replaceAll("<.*", "");
            Element e = trees.getElement(getCurrentPath());
            if (t.getClassBody() == null) {
                String from = scope.isEmpty() ? "" : scope.peek();
                if (e == null || e.asType().getKind() == javax.lang.model.type.TypeKind.ERROR) {
                    unknown.computeIfAbsent(from, n -> new TreeSet<>()).add(text.substring(text.lastIndexOf('.') + 1));
                } else {
                    TreePath p = trees.getPath(e.getEnclosingElement());
                    String to = name(e.getEnclosingElement());
                    if (p != null && to != null) {
                        out.printf("{\"kind\":\"call\",\"file\":%s,\"name\":%s,\"to\":%s,\"toName\":%s,\"how\":\"static\"}%n", quote(file), quote(from), quote(Reference.file(p.getCompilationUnit())), quote(to));
                    }
                }
            } else {
                unknown.computeIfAbsent(scope.isEmpty() ? "" : scope.peek(), n -> new TreeSet<>()).add(text.substring(text.lastIndexOf('.') + 1));
            }
            return super.visitNewClass(t, v);
        }
    }
}
